import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Catalogs of Apache Iceberg behind its own REST servlet: GET /new?folder=FOLDER makes one, and answers its path. */
public class Catalogs extends HttpServlet {
  private final List<RESTCatalogServlet> catalogs = new ArrayList<>();

  public static void main(String[] args) throws Exception {
    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost("127.0.0.1");
    server.addConnector(connector);
    ServletContextHandler root = new ServletContextHandler();
    root.addServlet(new ServletHolder(new Catalogs()), "/*");
    server.setHandler(root);
    server.start();
    System.out.println(connector.getLocalPort());
    System.in.read(); // The end of who started it.
    System.exit(0);
  }

  @Override
  protected void service(HttpServletRequest request, HttpServletResponse answer) throws IOException, ServletException {
    String path = request.getRequestURI();
    if (path.equals("/new")) {
      answer.getWriter().print("/" + begin(request.getParameter("folder")));
      return;
    }
    String name = path.split("/", 3)[1];
    RESTCatalogServlet catalog;
    synchronized (catalogs) {
      catalog = catalogs.get(Integer.parseInt(name));
    }
    catalog.service(
        new HttpServletRequestWrapper(request) {
          @Override
          public String getRequestURI() {
            return path.substring(name.length() + 1);
          }
        },
        answer);
  }

  private int begin(String folder) {
    Map<String, String> properties =
        Map.of(
            "catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog",
            "io-impl", "org.apache.iceberg.hadoop.HadoopFileIO",
            "jdbc.schema-version", "V1",
            "uri", "jdbc:sqlite:" + folder + "/rest.db?busy_timeout=10000",
            "warehouse", folder + "/warehouse");
    synchronized (catalogs) {
      catalogs.add(
          new RESTCatalogServlet(
              new RESTCatalogAdapter(
                  CatalogUtil.buildIcebergCatalog("c" + catalogs.size(), properties, new Configuration()))));
      return catalogs.size() - 1;
    }
  }
}
